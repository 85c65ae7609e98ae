import { audit } from './audit.tsx'
import { batch, batches } from './batches.tsx'
import { comparison, report, run } from './comparison.tsx'
import { letters } from './letters.tsx'
import { record } from './record.tsx'
import { sandbox } from './sandbox.tsx'
import { tryIt } from './try.tsx'
import { overview } from './overview.tsx'
import type { Page } from './page.ts'
import { partner, partners } from './partners.tsx'

/** All pages; what is not here does not exist. */
export const pages: readonly Page[] = [
  overview,
  partners,
  partner,
  batches,
  batch,
  record,
  letters,
  comparison,
  run,
  report,
  tryIt,
  sandbox,
  audit,
]
