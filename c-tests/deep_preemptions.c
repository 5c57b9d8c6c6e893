/* A bug that needs two preemptions among six threads of sixty operations each. */
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m[6] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER }, g = PTHREAD_MUTEX_INITIALIZER;
static int state;
static void spin(int i, int n) { while (n--) { pthread_mutex_lock(&m[i]); pthread_mutex_unlock(&m[i]); } }
static int get(void) { pthread_mutex_lock(&g); int v = state; pthread_mutex_unlock(&g); return v; }
static void set(int v) { pthread_mutex_lock(&g); state = v; pthread_mutex_unlock(&g); }
static void *body(void *arg) {
  int i = (int)(long)arg;
  if (i == 1) { spin(i, 13); set(1); spin(i, 2); set(2); spin(i, 13); }
  else if (i == 4) { spin(i, 13); if (get() == 1) { spin(i, 2); assert(get() != 2); } spin(i, 13); }
  else spin(i, 30);
  return 0;
}
int main(void) { pthread_t t[6]; for (long i = 0; i < 6; i++) pthread_create(&t[i], 0, body, (void *)i); for (int i = 0; i < 6; i++) pthread_join(t[i], 0); return 0; }
