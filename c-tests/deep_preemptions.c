/* A bug that needs two preemptions, at places far apart, among six threads of sixty operations each: the writer must be
   stopped in the window near its end before the reader has come to its first look, and the reader between its two looks,
   which are far from each other too, until the writer is over. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t own[6] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                  PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static int state;

/* Two operations each time. */
static void work(int i, int times) {
  while (times--) {
    pthread_mutex_lock(&own[i]);
    pthread_mutex_unlock(&own[i]);
  }
}

static int get(void) {
  pthread_mutex_lock(&shared);
  int value = state;
  pthread_mutex_unlock(&shared);
  return value;
}

static void set(int value) {
  pthread_mutex_lock(&shared);
  state = value;
  pthread_mutex_unlock(&shared);
}

static void writer(int i) {
  work(i, 22);
  set(1);
  work(i, 5);
  set(2);
  work(i, 1);
}

static void reader(int i) {
  work(i, 1);
  int first = get();
  work(i, 5);
  int second = get();
  work(i, 22);
  assert(!(first == 1 && second == 2));
}

static void *body(void *arg) {
  int i = (int)(long)arg;
  switch (i) {
  case 1: writer(i); break;
  case 4: reader(i); break;
  default: work(i, 30);
  }
  return 0;
}

int main(void) {
  pthread_t t[6];
  for (long i = 0; i < 6; i++) pthread_create(&t[i], 0, body, (void *)i);
  for (int i = 0; i < 6; i++) pthread_join(t[i], 0);
  return 0;
}
