#include "o.h"
int main(){ int id=semget(IPC_PRIVATE,3,0600|IPC_CREAT); pid_t c=fork(); if(!c){ struct sembuf b[2]={{0,-1,0},{1,-1,0}}; int r=semop(id,b,2); _exit(r==0);} usleep(3000); int n0=semctl(id,0,GETNCNT),n1=semctl(id,1,GETNCNT); semctl(id,0,IPC_RMID); wait(0); assert(!(n0==1&&n1==0)); }
