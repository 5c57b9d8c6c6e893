#include "o.h"
static void*t(void*a){ return (void*)E(waitpid(-1,0,__WNOTHREAD)); }
int main(){ pid_t c=fork(); if(!c) _exit(3); pthread_t a; pthread_create(&a,0,t,0); void*x; pthread_join(a,&x); assert((long)x>0); }
