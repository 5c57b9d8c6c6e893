#include "pre.h"
static pthread_key_t k; static sem_t s; static void d(void*x){sem_post(&s);}
static void*f(void*x){pthread_setspecific(k,&s);
#ifdef JITTER
usleep(1000);
#endif
return 0;}
int main(){ pthread_key_create(&k,d); pthread_t t; pthread_create(&t,0,f,0); pthread_key_delete(k); pthread_join(t,0); assert(sem_trywait(&s)==0); return 0;}
