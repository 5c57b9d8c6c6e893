/*
 * Runs a command under what docker's default seccomp profile forbids to a container without further capabilities (moby,
 * profiles/seccomp/default.json, as numbers of calls on x86-64), and io_uring, which newer ones forbid too:
 *
 *   profile docker COMMAND..         all of it
 *   profile personality COMMAND..    the same, but that address randomization may be switched off
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int forbidden[] = {
    SYS_syslog, SYS_uselib, SYS_ustat, SYS_sysfs, SYS_vhangup, SYS_pivot_root, SYS__sysctl, SYS_acct, SYS_settimeofday, SYS_mount,
    SYS_umount2, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_sethostname, SYS_setdomainname, SYS_iopl, SYS_ioperm, SYS_create_module,
    SYS_init_module, SYS_delete_module, SYS_get_kernel_syms, SYS_query_module, SYS_quotactl, SYS_nfsservctl, SYS_getpmsg, SYS_putpmsg,
    SYS_afs_syscall, SYS_tuxcall, SYS_security, SYS_lookup_dcookie, SYS_clock_settime, SYS_vserver, SYS_mbind, SYS_set_mempolicy,
    SYS_get_mempolicy, SYS_kexec_load, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_migrate_pages, SYS_unshare, SYS_move_pages,
    SYS_perf_event_open, SYS_fanotify_init, SYS_open_by_handle_at, SYS_setns, SYS_kcmp, SYS_finit_module, SYS_kexec_file_load, SYS_bpf,
    SYS_userfaultfd, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_pidfd_getfd,
    SYS_process_madvise, 442 /* mount_setattr */, 443 /* quotactl_fd */, 450 /* set_mempolicy_home_node */, SYS_io_uring_setup,
    SYS_io_uring_enter, SYS_io_uring_register,
};
/* New namespaces. */
#define NAMESPACES 0x7e020000u
static const unsigned personalities[] = {0, 8, 0x20000, 0x20008, 0xffffffff};

static struct sock_filter code[512];
static unsigned short length;

static void put(unsigned short op, unsigned k, unsigned char yes, unsigned char no)
{
    code[length++] = (struct sock_filter){op, yes, no, k};
}

#define LOAD(field) put(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field), 0, 0)
#define FAIL(error) put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error), 0, 0)
#define ALLOW() put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0)
/* What stands behind it is done if it holds; it is `n` instructions. */
#define IF(op, value, n) put(BPF_JMP | (op) | BPF_K, value, 0, n)

int main(int argc, char **argv)
{
    struct sock_fprog program = {0, code};

    if (argc < 3)
        return fprintf(stderr, "usage: profile docker|personality COMMAND..\n"), 2;
    LOAD(nr);
    for (unsigned i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        IF(BPF_JEQ, forbidden[i], 1);
        FAIL(EPERM);
    }
    IF(BPF_JEQ, SYS_clone3, 1);
    FAIL(ENOSYS);
    IF(BPF_JEQ, SYS_clone, 4);
    LOAD(args[0]);
    IF(BPF_JSET, NAMESPACES, 1);
    FAIL(EPERM);
    ALLOW();
    IF(BPF_JEQ, SYS_socket, 4);
    LOAD(args[0]);
    IF(BPF_JEQ, AF_VSOCK, 1);
    FAIL(EPERM);
    ALLOW();
    if (strcmp(argv[1], "docker") == 0) {
        IF(BPF_JEQ, SYS_personality, 2 + 2 * sizeof personalities / sizeof *personalities);
        LOAD(args[0]);
        for (unsigned i = 0; i < sizeof personalities / sizeof *personalities; i++) {
            IF(BPF_JEQ, personalities[i], 1);
            ALLOW();
        }
        FAIL(EPERM);
    }
    ALLOW();
    program.len = length;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return perror("profile: seccomp"), 2;
    execvp(argv[2], argv + 2);
    return perror("profile: exec"), 2;
}
