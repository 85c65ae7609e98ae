import type { Config } from '../config/index.ts'

/** The descriptors reserved for the files, threads, journal and log of a process. */
const OWN = 64
/** The descriptors reserved for connections to V2, by relays and by separate reads. */
const V2 = 128
/** The maximum number of descriptors for the console. */
const MAX_CONSOLE = 256
/** If fewer descriptors than this are left for clients, the adapter logs a warning. */
const FEW_CLIENTS = 256

/** The division of the file descriptors that this process may open. */
interface DescriptorShares {
  readonly limit: number
  /** The maximum number of concurrent client connections. */
  readonly clients: number
  readonly console: number
}

/**
 * Divides the file descriptors of the process, or returns `undefined` if the system sets no limit. Those for upstreams, the journal and
 * the log are reserved, so that many client connections cannot keep requests from V3. Clients get at least a quarter.
 */
export function shareDescriptors(
  { upstreams: { v3, v2 } }: Pick<Config, 'upstreams'>,
  limit: number | undefined = readLimit(),
): DescriptorShares | undefined {
  if (limit === undefined) return undefined
  const console = Math.min(MAX_CONSOLE, Math.floor(limit / 8))
  // Writes, reads and the pass-through have separate connections.
  const upstream = 3 * v3.connections + (v2 === undefined ? 0 : V2)
  return { limit, console, clients: Math.max(limit - OWN - upstream - console, Math.floor(limit / 4)) }
}

/** Returns a warning about a process that can serve only few clients, or `undefined` if it can serve many. */
export function shortageOf(shares: DescriptorShares | undefined): string | undefined {
  if (shares === undefined || shares.clients >= FEW_CLIENTS) return undefined
  return `The process may open ${shares.limit} files (ulimit -n), so it accepts at most ${shares.clients} client connections at a time. Raise the limit, for systemd with LimitNOFILE=.`
}

/**
 * Returns the number of files that this process may open, or `undefined` if there is no limit. Node.js raises the soft limit to the
 * hard limit at its start.
 */
function readLimit(): number | undefined {
  const { report } = process
  // Without this setting the report looks up the names of all peers. Node's types lack the member.
  Object.assign(report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft: unknown } } } // prettier-ignore
  const soft = userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : undefined
}
