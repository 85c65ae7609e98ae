import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** The identity of a process, as far as the machine provides it. */
export interface ProcessIdentity {
  readonly host: string
  /** The machine's start and the namespace of process numbers; empty where there is no /proc. */
  readonly boot: string
  readonly pid: number
  /** When the process started, in ticks since the machine did; empty where there is no /proc. */
  readonly started: string
}

/** One text for each process; `processColumns` have the same. */
export const processOf = ({ boot, pid, started }: Omit<ProcessIdentity, 'host'>): string =>
  `${boot} ${pid} ${started}`

/** What tells the process of an instance from others; SQL. */
export const processColumns = "boot || ' ' || cast(pid as text) || ' ' || started"

/** Reads who this process is. */
export function ownIdentity(): ProcessIdentity {
  return { host: hostname(), boot: readBoot(), pid: process.pid, started: lookAt(process.pid).started ?? '' }
}

/** The machine's information about a process number. */
export interface ProcessSight {
  /** A process has the number. */
  readonly alive: boolean
  /** When that process started; undefined where it cannot be read, empty for one that has ended and is not buried yet. */
  readonly started: string | undefined
}

/** A process and the machine that it runs on. */
export interface Processes {
  readonly own: ProcessIdentity
  readonly look: (pid: number) => ProcessSight
}

/** This process, as the operating system knows it. */
export const ownProcesses = (): Processes => ({ own: ownIdentity(), look: lookAt })

/**
 * True where it is sure that the process is gone: it ran here, and its number is free or belongs to another by now. False
 * for one of another machine or container, or one that is hidden from this user: its lease tells.
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

/** Process numbers of two containers are alike: the namespace belongs to the name of the machine. */
function readBoot(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/** Field 22 of /proc/pid/stat (proc(5)); the second field may hold spaces and ends with the last parenthesis. */
function readStarted(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie: it ended, and its parent has not asked for it.
    return fields[0] === 'Z' ? '' : fields[19]
  } catch {
    // There is no /proc, or it shows no processes of others (proc(5), hidepid).
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
