import type { Config } from '../config/index.ts'

/** Files, threads, journal and log of a process. */
const OWN = 64
/** Connections to each address of V2 by relays, and by reads beside them. */
const V2 = 128
/** Of the console. */
const MAX_CONSOLE = 256
/** A process with fewer descriptors for clients is said to be short of them. */
const FEW_CLIENTS = 256

/** The shares of the file descriptors that this process may open; undefined: the system has no limit. */
interface DescriptorShares {
  readonly limit: number
  /** Connections of clients at a time. */
  readonly clients: number
  readonly console: number
}

/**
 * Divides the descriptors of the process: those of upstreams, journal and log are left out of what clients may take, so that a crowd of
 * connections keeps no request from V3. Clients get a quarter at least.
 */
export function shareDescriptors(
  { upstreams: { v3, v2 } }: Pick<Config, 'upstreams'>,
  limit: number | undefined = readLimit(),
): DescriptorShares | undefined {
  if (limit === undefined) return undefined
  const console = Math.min(MAX_CONSOLE, Math.floor(limit / 8))
  // Writes, reads and pass-through have their own connections.
  const upstream = 3 * v3.connections + (v2 === undefined ? 0 : V2)
  return { limit, console, clients: Math.max(limit - OWN - upstream - console, Math.floor(limit / 4)) }
}

/** What to say of a process that can serve few clients; undefined where it can serve many. */
export function shortageOf(shares: DescriptorShares | undefined): string | undefined {
  if (shares === undefined || shares.clients >= FEW_CLIENTS) return undefined
  return `The process may open ${shares.limit} files (ulimit -n), so it takes ${shares.clients} connections of clients at a time. Raise the limit, with LimitNOFILE= for systemd.`
}

/** The number of files that this process may open: Node.js raises the soft limit to the hard one when it starts. */
function readLimit(): number | undefined {
  const { report } = process
  // It would look up the names of all peers. Node's types lack this member.
  Object.assign(report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft: unknown } } } // prettier-ignore
  const soft = userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : undefined
}
