/* Three threads count without a lock around both steps: updates get lost. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void *count(void *unused)
{
    int seen;
    pthread_mutex_lock(&lock);
    seen = total;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    total = seen + 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    char word[32] = "total";
    FILE *file = fopen("word", "r");
    int i;
    if (file) {
        if (!fgets(word, sizeof word, file))
            return 9;
        fclose(file);
    }
    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("counted\n%s %d\n", word, total);
    return argc > 1 && strcmp(argv[1], "fails") == 0 && total == 1 ? 3 : 0;
}
