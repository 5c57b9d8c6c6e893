#include "pre.h"
static pthread_t t; static sem_t s;
static void*f(void*x){sem_wait(&s);return 0;}
static void*j(void*x){pthread_join(t,0);return 0;}
int main(){ pthread_t a,b; pthread_create(&t,0,f,0); pthread_create(&a,0,j,0);pthread_create(&b,0,j,0); usleep(5000); sem_post(&s); pthread_join(a,0);pthread_join(b,0); return 0;}
