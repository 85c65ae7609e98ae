import { type Samples, sampleMark, startSandbox } from '../../sandbox/start-sandbox.ts'

/** The service with both faces, and marks that it takes. */
export interface ComparedFaces {
  readonly v3Url: string
  readonly v2Url: string
  readonly samples: Samples
  /** A flat record of this learner, by number. */
  mark: (learner: number, fields?: object) => object
  /** Faces of the marks that were taken, in their order. */
  faces: () => Promise<string[]>
  /** Sets what `/_sandbox/<name>` controls. */
  put: (name: string, body: object) => Promise<void>
}

/** Starts the service, by the clock of this machine. */
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
