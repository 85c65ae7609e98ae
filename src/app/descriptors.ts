import type { Config } from '../config/index.ts'

/** File descriptors that are reserved for the files, threads, journal and log of a process. */
const OWN = 64
/** File descriptors that are reserved for requests that V2 serves and for the adapter's own reads of V2. */
const V2 = 128
const MAX_CONSOLE = 256
/** The number of client connections below which the adapter logs a warning. */
const FEW_CLIENTS = 256

interface DescriptorShares {
  readonly limit: number
  readonly clients: number
  readonly console: number
}

/**
 * Divides the file descriptors of the process between its connections. Reserves descriptors for upstreams, the journal and the log, so that
 * many clients cannot block the requests to V3. Clients get at least a quarter of all descriptors. Returns `undefined` if the system sets
 * no limit.
 */
export function shareDescriptors(
  { upstreams: { v3, v2 } }: Pick<Config, 'upstreams'>,
  limit: number | undefined = readLimit(),
): DescriptorShares | undefined {
  if (limit === undefined) return undefined
  const console = Math.min(MAX_CONSOLE, Math.floor(limit / 8))
  // Counts the connections to V3 three times, because writes, reads and the pass-through each have their own.
  const upstream = 3 * v3.connections + (v2 === undefined ? 0 : V2)
  return { limit, console, clients: Math.max(limit - OWN - upstream - console, Math.floor(limit / 4)) }
}

export function shortageOf(shares: DescriptorShares | undefined): string | undefined {
  if (shares === undefined || shares.clients >= FEW_CLIENTS) return undefined
  return `The process may open ${shares.limit} files (ulimit -n), so it accepts at most ${shares.clients} client connections at a time. Raise the limit, for systemd with LimitNOFILE=.`
}

/** Returns the limit of open files, or `undefined` if there is no limit. Node.js raises the soft limit to the hard limit at its start. */
function readLimit(): number | undefined {
  const { report } = process
  // Without this setting, which the types of Node.js lack, the report would look up the host names of all peers.
  Object.assign(report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft: unknown } } } // prettier-ignore
  const soft = userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : undefined
}
