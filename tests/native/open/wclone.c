#include "o.h"
int main(){ pid_t c=fork(); if(!c) _exit(3); int r=E(waitpid(-1,0,__WCLONE)); assert(r>0); }
