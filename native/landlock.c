/*
 * Runs a program that Landlock, a seccomp filter and the loss of every privilege contain, and ends as it ends. For a Linux
 * on which a user may make no namespaces.
 *
 *   landlock [--read PATH]... [--write PATH]... [--device PATH]... [--processes N] -- PROGRAM [ARGUMENT]...
 *
 * --read    it may read and execute what lies at or below PATH
 * --write   it may do everything with what lies at or below PATH
 * --device  it may read and write the character device PATH
 * --processes  when there are more of it than N, all are ended, descriptor 4 is told {"stopped":"processes"}, and this
 *              process waits a moment to be ended too
 *
 * Everything else of the file system is refused to it, as are TCP, and signals and abstract UNIX sockets across the border
 * where the kernel knows of that. What is left of a network is for the filter to refuse: descriptor 3 holds it, a
 * struct sock_filter[], up to its end.
 *
 * When PROGRAM ends, this process is asked to (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or its parent ends, so does everything
 * that came of PROGRAM, wherever that hid. Descriptor 4 is told {"child-pid":N}: the process that all of it descends from.
 *
 * Nothing is followed: a PATH that is a symlink grants nothing. A PATH that is not there is left out. Whatever else goes
 * wrong ends it before PROGRAM starts, with exit 126 and one line on stderr.
 *
 * Numbers: include/uapi/linux/landlock.h of Linux 6.18; headers of distributions know fewer of them.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { filter_descriptor = 3, status_descriptor = 4, refused = 126 };

/* The same on every machine that the filter knows. */
enum { nr_create_ruleset = 444, nr_add_rule = 445, nr_restrict_self = 446, nr_close_range = 436 };

enum { create_ruleset_version = 1, rule_path_beneath = 1, close_range_cloexec = 4 };

/* Rights to files and directories, in the order in which the kernel came to know them. */
#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_TRUNCATE (1ULL << 14)
#define FS_IOCTL_DEV (1ULL << 15)
/* How many bits there were as of ABI 3 (the first that knows truncation), and as of ABI 5 (device ioctls). */
enum { fs_bits_abi_3 = 15, fs_bits_abi_5 = 16 };

#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)

/* As of ABI 4: TCP bind and connect. As of ABI 6: abstract UNIX sockets and signals. */
#define NET_ALL 3ULL
#define SCOPE_SIGNAL 2ULL
#define SCOPE_ALL 3ULL

struct ruleset {
  uint64_t fs;
  uint64_t net;
  uint64_t scoped;
};

struct path_beneath {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

static _Noreturn void refuse(const char *what, const char *why) {
  dprintf(STDERR_FILENO, "landlock: %s: %s\n", what, why);
  _exit(refused);
}

static _Noreturn void fail(const char *what) { refuse(what, strerror(errno)); }

/* The length up to which the kernel of an ABI reads a struct ruleset: what it does not know, it must not be shown. */
static size_t ruleset_size(long abi) {
  return abi >= 6 ? sizeof(struct ruleset) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static long landlock_abi(void) {
  long abi = syscall(nr_create_ruleset, NULL, 0, create_ruleset_version);
  if (abi < 0) fail("this kernel has no Landlock");
  if (abi < 3) refuse("this kernel's Landlock is too old", "it does not know truncation");
  return abi;
}

static int make_ruleset(long abi, const struct ruleset *handled) {
  int ruleset = (int)syscall(nr_create_ruleset, handled, ruleset_size(abi), 0);
  if (ruleset < 0) fail("no ruleset");
  return ruleset;
}

static void restrict_self(int ruleset) {
  if (syscall(nr_restrict_self, ruleset, 0) != 0) fail("restrict");
}

static void grant(int ruleset, uint64_t handled, const char *option, const char *path) {
  int writes = strcmp(option, "--write") == 0;
  int is_device = strcmp(option, "--device") == 0;
  if (!writes && !is_device && strcmp(option, "--read") != 0) refuse(option, "is no option");
  int parent = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (parent < 0) {
    if (errno == ENOENT) return;
    fail(path);
  }
  struct stat info;
  if (fstat(parent, &info) != 0) fail(path);
  if (is_device && !S_ISCHR(info.st_mode)) refuse(path, "is no device");
  if (!S_ISLNK(info.st_mode)) {
    struct path_beneath rule = {.parent = parent};
    rule.allowed = writes ? handled : is_device ? FS_READ_FILE | FS_WRITE_FILE : FS_READ;
    if (!S_ISDIR(info.st_mode)) rule.allowed &= FS_OF_FILES;
    rule.allowed &= handled;
    if (syscall(nr_add_rule, ruleset, rule_path_beneath, &rule, 0) != 0) fail(path);
  }
  close(parent);
}

static struct sock_fprog read_filter(void) {
  static struct sock_filter program[BPF_MAXINSNS];
  size_t length = 0;
  while (length < sizeof program) {
    ssize_t count = read(filter_descriptor, (char *)program + length, sizeof program - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("no filter on descriptor 3");
    if (count == 0) break;
    length += (size_t)count;
  }
  if (length == 0 || length == sizeof program || length % sizeof *program != 0)
    refuse("no filter on descriptor 3", "its length is not that of a filter");
  return (struct sock_fprog){.len = (unsigned short)(length / sizeof *program), .filter = program};
}

/*
 * Takes away what the program could get capabilities back from. Only who has CAP_SETPCAP may, and to everybody else
 * no_new_privs says the same.
 */
static void close_sources_of_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, held) != 0) fail("capabilities cannot be read");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) fail("ambient capabilities");
  if ((held[CAP_TO_INDEX(CAP_SETPCAP)].effective & CAP_TO_MASK(CAP_SETPCAP)) == 0) return;
  for (unsigned long each = 0; prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; each++)
    if (prctl(PR_CAPBSET_DROP, each, 0, 0, 0) != 0) fail("the bounding set");
  unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                       SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) fail("securebits");
}

static void drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
  if (syscall(SYS_capset, &header, none) != 0) fail("capabilities");
}

/* Signals reach no further than to what descends from here. Whether that is so: older kernels do not know it. */
static int cage(long abi) {
  if (abi < 6) return 0;
  const struct ruleset only_signals = {.scoped = SCOPE_SIGNAL};
  int ruleset = make_ruleset(abi, &only_signals);
  restrict_self(ruleset);
  close(ruleset);
  /* SIGKILL to everybody depends on it, so it is tried on somebody outside first. */
  return kill(getppid(), 0) != 0 && errno == EPERM;
}

static void send_to_children(int signal) {
  char file[64];
  snprintf(file, sizeof file, "/proc/self/task/%d/children", (int)getpid());
  FILE *children = fopen(file, "re");
  int child;
  while (children != NULL && fscanf(children, "%d", &child) == 1) kill(child, signal);
  if (children != NULL) fclose(children);
}

/*
 * Ends whatever is left. In the cage "every process" is every one that came from here, and all get it at once: none can
 * fork its way out. Without it, children are ended one by one, and become ours when their parents are gone.
 */
static void end_everything(int is_caged) {
  for (;;) {
    if (is_caged)
      kill(-1, SIGKILL);
    else
      send_to_children(SIGKILL);
    if (waitpid(-1, NULL, is_caged ? 0 : WNOHANG) < 0 && errno == ECHILD) return;
  }
}

/* Whoever can be sent a signal from the cage is in it. */
static long count_processes(void) {
  DIR *proc = opendir("/proc");
  if (proc == NULL) return 0;
  long count = 0;
  for (const struct dirent *entry; (entry = readdir(proc)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    pid_t pid = (pid_t)atol(entry->d_name);
    if (pid != getpid() && kill(pid, 0) == 0) count++;
  }
  closedir(proc);
  return count;
}

static _Noreturn void end_like(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  int number = WTERMSIG(status);
  signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  raise(number);
  sigprocmask(SIG_SETMASK, &none, NULL);
  _exit(128 + number);
}

/* Waits for the program with every signal blocked, so that one of them cannot end this process before the others. */
static _Noreturn void supervise(pid_t program, int is_caged, long max_processes) {
  /* Whoever reads what the program writes waits for the last holder of its descriptors. */
  for (int each = STDIN_FILENO; each <= STDERR_FILENO; each++) close(each);
  sigset_t awaited;
  sigemptyset(&awaited);
  const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  for (size_t each = 0; each < sizeof signals / sizeof *signals; each++) sigaddset(&awaited, signals[each]);
  /* Whoever watches from outside gets no turn among thousands: it takes a look that costs next to nothing. */
  const struct timespec period = {.tv_nsec = 100 * 1000 * 1000};
  for (;;) {
    int number = sigtimedwait(&awaited, NULL, &period);
    if (number > 0 && number != SIGCHLD) {
      end_everything(is_caged);
      _exit(128 + number);
    }
    if (is_caged && max_processes > 0 && count_processes() > max_processes) {
      end_everything(is_caged);
      dprintf(status_descriptor, "{\"stopped\":\"processes\"}\n");
      const struct timespec moment = {.tv_sec = 5};
      sigdelset(&awaited, SIGCHLD);
      sigtimedwait(&awaited, NULL, &moment);
      _exit(128 + SIGKILL);
    }
    int status;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == program) {
        end_everything(is_caged);
        end_like(status);
      }
  }
}

int main(int count, char **words) {
  long abi = landlock_abi();
  const struct ruleset handled = {
      .fs = (1ULL << (abi >= 5 ? fs_bits_abi_5 : fs_bits_abi_3)) - 1,
      .net = abi >= 4 ? NET_ALL : 0,
      .scoped = abi >= 6 ? SCOPE_ALL : 0,
  };
  int ruleset = make_ruleset(abi, &handled);
  long max_processes = 0;
  int at = 1;
  for (; at + 1 < count && strcmp(words[at], "--") != 0; at += 2)
    if (strcmp(words[at], "--processes") == 0)
      max_processes = atol(words[at + 1]);
    else
      grant(ruleset, handled.fs, words[at], words[at + 1]);
  if (at + 1 >= count || strcmp(words[at], "--") != 0) refuse("usage", "[--read|--write|--device PATH]... [--processes N] -- PROGRAM");
  char **program = words + at + 1;

  struct sock_fprog filter = read_filter();
  dprintf(status_descriptor, "{\"child-pid\":%d}\n", (int)getpid());
  /* An open descriptor is a right that no rule takes back. */
  if (syscall(nr_close_range, filter_descriptor, ~0U, close_range_cloexec) != 0) fail("descriptors");
  struct rlimit no_core = {0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) fail("the limit of core files");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) fail("orphans");

  close_sources_of_capabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  int is_caged = cage(abi);
  drop_capabilities();
  if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0) fail("the end with its parent");

  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child > 0) supervise(child, is_caged, max_processes);

  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) fail("the end with its parent");
  restrict_self(ruleset);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) fail("the filter");
  sigprocmask(SIG_SETMASK, &before, NULL);
  execvp(program[0], program);
  fail(program[0]);
}
