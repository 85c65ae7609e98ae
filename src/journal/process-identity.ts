import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

export interface ProcessIdentity {
  readonly host: string
  /** Identifies the boot of the machine and the namespace of process ids, or is empty without /proc. */
  readonly boot: string
  readonly pid: number
  /** When the process started, in ticks since the boot of the machine, or empty without /proc. */
  readonly started: string
}

/** Returns a text that is unique for each process. `processColumns` is the same text in SQL. */
export const processOf = ({ boot, pid, started }: Omit<ProcessIdentity, 'host'>): string =>
  `${boot} ${pid} ${started}`

export const processColumns = "boot || ' ' || cast(pid as text) || ' ' || started"

export function ownIdentity(): ProcessIdentity {
  return { host: hostname(), boot: readBoot(), pid: process.pid, started: lookAt(process.pid).started ?? '' }
}

export interface ProcessSight {
  readonly alive: boolean
  /** When the process started, in ticks since the boot of the machine. `undefined` if the time cannot be read, or empty for a zombie. */
  readonly started: string | undefined
}

export interface Processes {
  readonly own: ProcessIdentity
  readonly look: (pid: number) => ProcessSight
}

export const ownProcesses = (): Processes => ({ own: ownIdentity(), look: lookAt })

/**
 * Returns true if the process is certainly dead: it ran on this machine, and its id is now free or belongs to another process. For a
 * process of another machine or container, or a process hidden from this user, returns false, and only the lease shows its end.
 */
export function isGone(
  process: ProcessIdentity,
  own: ProcessIdentity,
  look: Processes['look'] = lookAt,
): boolean {
  if (process.host !== own.host || process.boot !== own.boot) return false
  const sight = look(process.pid)
  if (!sight.alive) return true
  if (process.started === '' || sight.started === undefined) return false
  return sight.started !== process.started
}

function lookAt(pid: number): ProcessSight {
  return { alive: isAlive(pid), started: readStarted(pid) }
}

/** Identifies the boot and the namespace of process ids. The namespace is needed because two containers may use the same process ids. */
function readBoot(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/** Returns field 22 of /proc/pid/stat (proc(5)), the start time. The second field may contain spaces, and ends with the last parenthesis. */
function readStarted(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // Returns an empty text for a zombie: a process that has ended, but that its parent has not reaped yet.
    return fields[0] === 'Z' ? '' : fields[19]
  } catch {
    // Reading fails if the system has no /proc, or if /proc hides the processes of other users (proc(5), hidepid).
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM means that the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
