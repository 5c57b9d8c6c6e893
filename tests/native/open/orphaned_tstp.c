#include "o.h"
int main(){ pid_t c=fork(); if(!c){ setsid(); raise(SIGTSTP); _exit(3);} int s=0; waitpid(c,&s,WUNTRACED); kill(c,SIGCONT); assert(!WIFEXITED(s)); }
