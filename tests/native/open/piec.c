#include "pre.h"
static pthread_mutex_t m,n;
static void*f(void*x){ pthread_mutex_lock(&m); usleep(10000); int r=pthread_mutex_lock(&n); if(!r)pthread_mutex_unlock(&n); pthread_mutex_unlock(&m); return 0;}
static void*g(void*x){ pthread_mutex_lock(&n); usleep(10000); int r=pthread_mutex_lock(&m); if(!r)pthread_mutex_unlock(&m); pthread_mutex_unlock(&n); return 0;}
int main(){ pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setprotocol(&a,PTHREAD_PRIO_INHERIT); pthread_mutexattr_settype(&a,PTHREAD_MUTEX_ERRORCHECK); pthread_mutex_init(&m,&a); pthread_mutex_init(&n,&a); pthread_t t,u; pthread_create(&t,0,f,0);pthread_create(&u,0,g,0);pthread_join(t,0);pthread_join(u,0);return 0;}
