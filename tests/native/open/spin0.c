#include "pre.h"
static pthread_spinlock_t s;
int main(){ assert(pthread_spin_trylock(&s)==0); return 0;}
