#include "pre.h"
static int ff; static char r1[3],r2[3];
static void*f(void*x){read(ff,x,2);return 0;}
int main(){ ff=memfd_create("x",0); write(ff,"abcd",4); lseek(ff,0,0); pthread_t a,b; pthread_create(&a,0,f,r1);pthread_create(&b,0,f,r2); pthread_join(a,0);pthread_join(b,0); assert(r1[0]=='a'); return 0;}
