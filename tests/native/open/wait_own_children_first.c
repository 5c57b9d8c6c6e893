#include "o.h"
static void*t(void*a){ pid_t c=fork(); if(!c) _exit(2); siginfo_t i; waitid(P_PID,c,&i,WEXITED|WNOWAIT); int s; wait(&s); return (void*)(long)WEXITSTATUS(s); }
int main(){ pid_t c=fork(); if(!c) _exit(1); siginfo_t i; waitid(P_PID,c,&i,WEXITED|WNOWAIT); pthread_t a; pthread_create(&a,0,t,0); void*x; pthread_join(a,&x); wait(0); assert((long)x==1); }
