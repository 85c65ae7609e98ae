import { createSandbox } from '../../../src/sandbox/index.ts'
import { onTestFinished } from 'vitest'

/** The service with both faces, and marks that it takes. */
export interface ComparedFaces {
  readonly v3Url: string
  readonly v2Url: string
  readonly samples: {
    readonly learners: readonly string[]
    readonly events: readonly string[]
    readonly codes: readonly { readonly id: string; readonly code: string }[]
  }
  /** A flat record of this learner, by number. */
  mark: (learner: number, fields?: object) => object
  /** Faces of the marks that were taken, in their order. */
  faces: () => Promise<string[]>
  /** Sets rules or faults of the sandbox. */
  put: (path: string, body: object) => Promise<void>
}

/** Starts the service. */
export async function startFaces(options: object = {}): Promise<ComparedFaces> {
  const sandbox = createSandbox({ v2Port: 0, ...options })
  const { url, v2Url } = await sandbox.listen()
  onTestFinished(() => sandbox.close())
  const read = async (path: string): Promise<unknown> => (await fetch(`${url}${path}`)).json()
  const samples = (await read('/_sandbox/samples')) as ComparedFaces['samples']
  return {
    v3Url: url,
    v2Url,
    samples,
    mark: (learner, fields = {}) => ({
      Present: true,
      Absent: false,
      Learner: samples.learners[learner],
      AttendableEvent: samples.events[0],
      SchoolAttendanceCode: samples.codes[0]?.id,
      MinutesLate: null,
      ...fields,
    }),
    faces: async () => ((await read('/_sandbox/effects')) as { face: string }[]).map(({ face }) => face),
    put: async (path, body) => {
      const headers = { 'Content-Type': 'application/json' }
      const reply = await fetch(`${url}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) })
      if (!reply.ok) throw new Error(`${path} was refused with ${reply.status}`)
    },
  }
}
