import { type Samples, sampleMark, startSandbox } from '../../sandbox/start-sandbox.ts'

/** The sandbox with both interfaces, and marks that it accepts. */
export interface ComparedFaces {
  readonly v3Url: string
  readonly v2Url: string
  readonly samples: Samples
  /** Builds a V2 record for the learner at this index of `samples`. */
  mark: (learner: number, fields?: object) => object
  /** Returns the interface that accepted each mark, in order. */
  faces: () => Promise<string[]>
  /** Sends a PUT with `body` to the sandbox's control endpoint `/_sandbox/<name>`. */
  put: (name: string, body: object) => Promise<void>
}

/** Starts the sandbox with the clock of this machine. */
export async function startFaces(options: object = {}): Promise<ComparedFaces> {
  const sandbox = await startSandbox({ now: undefined, v2Port: 0, ...options })
  const samples = await sandbox.samples()
  return {
    v3Url: sandbox.url,
    v2Url: sandbox.v2Url,
    samples,
    mark: (learner, fields) => sampleMark(samples, learner, fields),
    faces: async () => ((await sandbox.effects()) as { face: string }[]).map(({ face }) => face),
    put: async (name, body) => {
      const { status } = await sandbox.put(name, body)
      if (status >= 300) throw new Error(`${name} was refused with ${status}`)
    },
  }
}
