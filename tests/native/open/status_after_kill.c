#include "o.h"
int main(){ sem_t*s=shared(); sem_init(s,1,0); pid_t c=fork(); if(!c){ sem_wait(s); _exit(3);} J(); kill(c,SIGTERM); sem_post(s); int st; wait(&st); assert(WIFSIGNALED(st)); }
