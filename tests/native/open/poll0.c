#include "o.h"
int main(){ handle(SIGCHLD,SA_RESTART); int p[2]; pipe(p); pid_t c=fork(); if(!c){ usleep(1500); _exit(3);} struct pollfd f={p[0],POLLIN}; int r=0;
#ifdef JITTER
 for(int i=0;i<20000&&!r;i++)
#endif
 r=E(poll(&f,1,0)); wait(0); assert(r!=-EINTR); }
