#include "o.h"
int main(){ pid_t c=fork(); if(!c){ J(); setpgid(0,0); _exit(5);} alarm(1); int r=E(waitpid(0,0,0)); assert(r!=c); }
