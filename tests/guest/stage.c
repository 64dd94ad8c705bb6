/*
 * The first program of an emulated machine, from its initial RAM disk: loads /modules/00, 01, ..., takes the
 * machine outside, read-only over 9p, as its root, and goes on with the guest's own init.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ends the machine: the kernel prints a panic after this line. */
static void expect(int result, const char *what) {
    if (result < 0) {
        printf("guest: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

int main(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    char path[4096];
    for (int i = 0; snprintf(path, sizeof path, "/modules/%02d", i), access(path, R_OK) == 0; i++) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        expect(file, path);
        if (syscall(SYS_finit_module, file, "", 0) < 0 && errno != EEXIST) {
            expect(-1, path);
        }
        close(file);
    }
    const char *options = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";
    expect(mkdir("/outside", 0755), "/outside");
    expect(mount("root", "/outside", "9p", MS_RDONLY, options), "the machine's files");
    expect(mount("devtmpfs", "/outside/dev", "devtmpfs", 0, NULL), "/dev");
    expect(chdir("/outside"), "/outside");
    expect(mount(".", "/", NULL, MS_MOVE, NULL), "the new root");
    expect(chroot("."), "the new root");
    expect(chdir("/"), "/");
    const char *guest = getenv("GUEST");
    snprintf(path, sizeof path, "%s/init", guest == NULL ? "" : guest);
    char *words[] = {path, NULL};
    execve(path, words, environment);
    expect(-1, path);
}
