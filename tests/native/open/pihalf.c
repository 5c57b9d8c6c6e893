#include "pre.h"
static pthread_mutex_t m,n; static pthread_barrier_t b;
static void*f(void*x){ pthread_mutex_lock(&m); usleep(20000); pthread_mutex_lock(&n); pthread_mutex_unlock(&n); pthread_mutex_unlock(&m); return 0;}
static void*g(void*x){ pthread_mutex_lock(&n); struct timespec t; clock_gettime(0,&t); t.tv_sec+=(t.tv_nsec+200000000)/1000000000; t.tv_nsec=(t.tv_nsec+200000000)%1000000000; usleep(10000); if(!pthread_mutex_timedlock(&m,&t)) pthread_mutex_unlock(&m); pthread_mutex_unlock(&n); return 0;}
int main(){ pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setprotocol(&a,PTHREAD_PRIO_INHERIT); pthread_mutex_init(&m,&a); pthread_mutex_init(&n,&a); pthread_t t,u; pthread_create(&t,0,f,0);pthread_create(&u,0,g,0);pthread_join(t,0);pthread_join(u,0);return 0;}
