#include "pre.h"
int main(){int p[2]; pipe(p); int r=fcntl(p[1],F_SETPIPE_SZ,100000); assert(r==131072); return 0;}
