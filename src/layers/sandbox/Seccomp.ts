/**
 * The seccomp filter of the sandbox: a classic BPF program, as bytes. It takes away what no check needs and every escape
 * starts with: looking into other processes, mounting, new namespaces, keys, kernel modules, and sockets that could reach
 * a listener outside (a read-only mount does not stop `connect` to a UNIX socket below it). `socketpair` of streams stays,
 * so pipes between a child and its parent work; one of datagrams could be sent from to any UNIX socket by name.
 *
 * Numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux 6.12.
 */

/** Refused with EPERM. */
const refusedX64 = {
  ptrace: 101,
  syslog: 103,
  pivot_root: 155,
  acct: 163,
  mount: 165,
  umount2: 166,
  swapon: 167,
  swapoff: 168,
  reboot: 169,
  iopl: 172,
  ioperm: 173,
  init_module: 175,
  delete_module: 176,
  quotactl: 179,
  kexec_load: 246,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  unshare: 272,
  perf_event_open: 298,
  fanotify_init: 300,
  open_by_handle_at: 304,
  setns: 308,
  process_vm_readv: 310,
  process_vm_writev: 311,
  kcmp: 312,
  finit_module: 313,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  mount_setattr: 442,
  open_tree_attr: 467
} as const

type Refused = Exclude<keyof typeof refusedX64, "iopl" | "ioperm">

const refusedArm64: Readonly<Record<Refused, number>> = {
  ptrace: 117,
  syslog: 116,
  pivot_root: 41,
  acct: 89,
  mount: 40,
  umount2: 39,
  swapon: 224,
  swapoff: 225,
  reboot: 142,
  init_module: 105,
  delete_module: 106,
  quotactl: 60,
  kexec_load: 104,
  add_key: 217,
  request_key: 218,
  keyctl: 219,
  unshare: 97,
  perf_event_open: 241,
  fanotify_init: 262,
  open_by_handle_at: 265,
  setns: 268,
  process_vm_readv: 270,
  process_vm_writev: 271,
  kcmp: 272,
  finit_module: 273,
  kexec_file_load: 294,
  bpf: 280,
  userfaultfd: 282,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  mount_setattr: 442,
  open_tree_attr: 467
}

/** What processes without an IPC namespace of their own share with all others: refused to those as well. */
const sharedX64 = {
  shmget: 29,
  shmat: 30,
  shmctl: 31,
  semget: 64,
  semop: 65,
  semctl: 66,
  msgget: 68,
  msgsnd: 69,
  msgrcv: 70,
  msgctl: 71,
  semtimedop: 220,
  mq_open: 240,
  mq_unlink: 241
} as const

const sharedArm64: Readonly<Record<keyof typeof sharedX64, number>> = {
  mq_open: 180,
  mq_unlink: 181,
  msgget: 186,
  msgctl: 187,
  msgrcv: 188,
  msgsnd: 189,
  semget: 190,
  semctl: 191,
  semtimedop: 192,
  semop: 193,
  shmget: 194,
  shmctl: 195,
  shmat: 196
}

interface Machine {
  /** AUDIT_ARCH of linux/audit.h. */
  readonly audit: number
  readonly refused: Readonly<Record<string, number>>
  readonly shared: Readonly<Record<string, number>>
  readonly clone: number
  readonly socket: number
  readonly socketpair: number
  readonly ioctl: number
  readonly prlimit64: number
}

const machines: Readonly<Record<string, Machine>> = {
  x64: {
    audit: 0xc000003e,
    refused: refusedX64,
    shared: sharedX64,
    clone: 56,
    socket: 41,
    socketpair: 53,
    ioctl: 16,
    prlimit64: 302
  },
  arm64: {
    audit: 0xc00000b7,
    refused: refusedArm64,
    shared: sharedArm64,
    clone: 220,
    socket: 198,
    socketpair: 199,
    ioctl: 29,
    prlimit64: 261
  }
}

/** Where the filtered processes stand: in namespaces of their own for the network, IPC and processes, or in those of the
 * host, where sockets and shared memory lead to everybody and limits can be set to anybody's processes. */
export type Namespaces = "own" | "host"

/** Answered with ENOSYS, to which libraries have an answer: flags of `clone3` lie behind a pointer, and io_uring does
 * what it likes past the filter. The same on every machine. */
const unknown = { io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427, clone3: 435 }

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET of linux/sched.h. */
const newNamespaces = 0x7e020000

/** AF_INET and AF_INET6: the network they reach is the one of the namespace. */
const families = [2, 10]
const unix = 1
const netlink = 16

/** Of the kinds of UNIX sockets, SOCK_DGRAM and SOCK_RAW have this bit; SOCK_STREAM and SOCK_SEQPACKET do not. */
const datagramBit = 2

/** TIOCSTI and TIOCLINUX put words into the terminal. */
const terminalWords = [0x5412, 0x541c]

const allow = 0x7fff0000
const kill = 0x80000000
const eperm = 0x00050001
const enosys = 0x00050026

const load = 0x20
const jumpEqual = 0x15
const jumpAtLeast = 0x35
const jumpAnySet = 0x45
const answer = 0x06

/** Offsets in `struct seccomp_data`; of arguments the low half, on the little-endian machines above. */
const nr = 0
const arch = 4
const argument = (at: number): number => 16 + 8 * at

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number]

/** Sockets of the network, and of it NETLINK_ROUTE: how a program asks which addresses it has. */
const networkSockets = (socket: number): ReadonlyArray<Instruction> => [
  [jumpEqual, 0, 8, socket],
  [load, 0, 0, argument(0)],
  ...families.map((family, at): Instruction => [jumpEqual, 5 - at, 0, family]),
  [jumpEqual, 0, 2, netlink],
  [load, 0, 0, argument(2)],
  [jumpEqual, 1, 0, 0],
  [answer, 0, 0, eperm],
  [answer, 0, 0, allow]
]

/** Limits of the calling process alone. */
const ownLimits = (prlimit64: number): ReadonlyArray<Instruction> => [
  [jumpEqual, 0, 4, prlimit64],
  [load, 0, 0, argument(0)],
  [jumpEqual, 1, 0, 0],
  [answer, 0, 0, eperm],
  [answer, 0, 0, allow]
]

const program = (machine: Machine, namespaces: Namespaces): ReadonlyArray<Instruction> => {
  const one = (number: number, reply: number): ReadonlyArray<Instruction> => [
    [jumpEqual, 0, 1, number],
    [answer, 0, 0, reply]
  ]
  return [
    [load, 0, 0, arch],
    [jumpEqual, 1, 0, machine.audit],
    [answer, 0, 0, kill],
    [load, 0, 0, nr],
    // The x32 numbers of x64 would get around everything below.
    [jumpAtLeast, 0, 1, 0x40000000],
    [answer, 0, 0, eperm],
    ...Object.values(machine.refused).flatMap((number) => one(number, eperm)),
    ...Object.values(unknown).flatMap((number) => one(number, enosys)),
    [jumpEqual, 0, 4, machine.clone],
    [load, 0, 0, argument(0)],
    [jumpAnySet, 0, 1, newNamespaces],
    [answer, 0, 0, eperm],
    [answer, 0, 0, allow],
    ...(namespaces === "own"
      ? networkSockets(machine.socket)
      : [
          ...one(machine.socket, eperm),
          ...Object.values(machine.shared).flatMap((number) => one(number, eperm)),
          ...ownLimits(machine.prlimit64)
        ]),
    [jumpEqual, 0, 6, machine.socketpair],
    [load, 0, 0, argument(0)],
    [jumpEqual, 0, 2, unix],
    [load, 0, 0, argument(1)],
    [jumpAnySet, 0, 1, datagramBit],
    [answer, 0, 0, eperm],
    [answer, 0, 0, allow],
    [jumpEqual, 0, 4, machine.ioctl],
    [load, 0, 0, argument(1)],
    ...terminalWords.map((word, at): Instruction => [jumpEqual, 1 - at, at, word]),
    [answer, 0, 0, eperm],
    [answer, 0, 0, allow]
  ]
}

/** The program as `struct sock_filter[]`; null for a machine whose numbers are not known. */
export const seccompFilter = (architecture: string, namespaces: Namespaces = "own"): Uint8Array | null => {
  const machine = machines[architecture]
  if (machine === undefined) return null
  const instructions = program(machine, namespaces)
  const view = new DataView(new ArrayBuffer(instructions.length * 8))
  for (const [at, [code, whenTrue, whenFalse, value]] of instructions.entries()) {
    view.setUint16(at * 8, code, true)
    view.setUint8(at * 8 + 2, whenTrue)
    view.setUint8(at * 8 + 3, whenFalse)
    view.setUint32(at * 8 + 4, value, true)
  }
  return new Uint8Array(view.buffer)
}
