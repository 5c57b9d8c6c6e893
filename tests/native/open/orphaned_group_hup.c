#include "o.h"
int main(){ int p[2]; pipe(p); pid_t c=fork(); if(!c){ setsid(); pid_t g=fork(); if(!g){ setpgid(0,0); signal(SIGHUP,SIG_IGN); close(p[0]); raise(SIGSTOP); write(p[1],"x",1); _exit(0);} waitpid(g,0,WUNTRACED); _exit(0);} close(p[1]); char b; int n=E(read(p[0],&b,1)); wait(0); assert(n!=1); }
