import { audit } from './audit.tsx'
import { batch } from './batch.tsx'
import { batches } from './batches.tsx'
import { comparison, report, run } from './comparison.tsx'
import { letters } from './letters.tsx'
import { overview } from './overview.tsx'
import type { Page } from './page.ts'
import { partner, partners } from './partners.tsx'
import { record } from './record.tsx'
import { sandbox } from './sandbox.tsx'
import { tryIt } from './try.tsx'

const ofLists = [overview, partners, batches, letters, comparison, tryIt, sandbox, audit]

export const pages: readonly Page[] = [...ofLists, partner, batch, record, run, report]
