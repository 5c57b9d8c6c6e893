// Two processes that pass a number to and fro with MPI, and sum up.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, n = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 5; i++) {
        if (rank == 0) {
            n++;
            MPI_Send(&n, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&n, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&n, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            n *= 2;
            MPI_Send(&n, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        }
    }
    int own = 10 * (rank + 1);
    MPI_Reduce(&own, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("number %d, sum %d of %d\n", n, sum, size);
    MPI_Finalize();
    return 0;
}
