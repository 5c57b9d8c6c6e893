#include "pre.h"
void*g(void*a){printf("b");return 0;}
int main(){int q[2];pipe(q);pid_t p=fork();if(!p){dup2(q[1],1);close(q[0]);close(q[1]);setvbuf(stdout,0,_IOFBF,100);pthread_t t;pthread_create(&t,0,g,0);printf("a");exit(0);}close(q[1]);char b[10]={0};int n=0,k;while((k=read(q[0],b+n,5))>0)n+=k;waitpid(p,0,0);assert(b[0]);return 0;}
