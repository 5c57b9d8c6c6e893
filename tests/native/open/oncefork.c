#include "pre.h"
static pthread_once_t o=PTHREAD_ONCE_INIT; static sem_t s; static int c;
static void ini(void){c++; sem_wait(&s);}
static void*f(void*x){pthread_once(&o,ini);return 0;}
int main(){ pthread_t t; pthread_create(&t,0,f,0); usleep(2000); pid_t p=fork(); if(!p){ sem_post(&s); pthread_once(&o,ini); _exit(c);} sem_post(&s); pthread_join(t,0); int st; waitpid(p,&st,0); assert(WEXITSTATUS(st)!=2); return 0;}
