/* What is thrown decides what happens; one number is wrong. */
#include <stdio.h>

#include "vs.h"

int main(void) {
    int thrown = VS_toss(2);
    printf("thrown %d\n", thrown);
    fflush(stdout);
    VS_assert(thrown != 1);
    return 0;
}
