import { expect, onTestFinished, test } from 'vitest'

import { runPieces } from './fuzz/check-run.ts'
import { runs } from '../support/long-run.ts'
import { startTarget } from './fuzz/start-target.ts'

const requests = runs(2_000, 20_000)

test(
  `the adapter answers ${requests} broken requests without a 500 or a hang, and keeps serving`,
  { timeout: 120_000 },
  async () => {
    const target = await startTarget()
    let open = true
    onTestFinished(async () => {
      if (open) await target.close()
    })
    const report = await runPieces(target, { seed: 1, requests, piece: requests / 2, concurrency: 32 })
    expect(report.findings).toEqual([])
    expect(report.internalErrors).toEqual([])
    // The random requests must produce successes as well as each kind of rejection. Otherwise the run tests too little.
    expect(Object.keys(report.statuses)).toEqual(expect.arrayContaining(['200', '400', '401', '404', '405']))
    expect((await fetch(`http://127.0.0.1:${target.port}/healthz`)).status).toBe(200)
    open = false
    expect(await target.close()).toBe(0)
  },
)
