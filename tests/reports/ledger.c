/* A ledger in a file that is replaced as a whole: who changes it locks the file, reads it, writes a new one beside it and renames that over
 * the old one, so that readers always find a whole ledger. Who has waited for the lock has the lock of the old file, which nobody looks at
 * any more: it reads the old balance, and what was booked in between is lost. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEDGER "balance"
#define CASHIERS 2

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void write_balance(const char *path, int balance)
{
    char text[32];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0)
        die(path);
    snprintf(text, sizeof text, "%d\n", balance);
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        die(path);
    close(fd);
}

static int read_balance(int fd)
{
    char text[32] = "";

    if (read(fd, text, sizeof text - 1) <= 0)
        die("read");
    return atoi(text);
}

/* ------------------------------------------------------------------ the ledger, locked */

static int ledger_lock(void)
{
    int fd = open(LEDGER, O_RDONLY);

    if (fd < 0)
        die(LEDGER);
    if (flock(fd, LOCK_EX) != 0)
        die("flock");
    return fd;
}

static void ledger_replace(int balance, const char *draft)
{
    write_balance(draft, balance);
    if (rename(draft, LEDGER) != 0)
        die("rename");
}

static void ledger_unlock(int fd)
{
    flock(fd, LOCK_UN);
    close(fd);
}

/* ------------------------------------------------------------------ cashiers */

static void book(int amount, const char *draft)
{
    int fd = ledger_lock();

    ledger_replace(read_balance(fd) + amount, draft);
    ledger_unlock(fd);
}

static void cashier(int number)
{
    char draft[32];

    snprintf(draft, sizeof draft, "balance.%d", number);
    book(10, draft);
    _exit(0);
}

int main(void)
{
    pid_t cashiers[CASHIERS];
    int fd, balance;

    write_balance(LEDGER, 100);
    for (int number = 0; number < CASHIERS; number++) {
        cashiers[number] = fork();
        if (cashiers[number] < 0)
            die("fork");
        if (cashiers[number] == 0)
            cashier(number);
    }
    for (int number = 0; number < CASHIERS; number++)
        if (waitpid(cashiers[number], NULL, 0) != cashiers[number])
            die("waitpid");
    fd = open(LEDGER, O_RDONLY);
    balance = read_balance(fd);
    close(fd);
    unlink(LEDGER);
    assert(balance == 100 + 10 * CASHIERS);
    return 0;
}
