import { readAdviceNote } from '../../rollout/advice-note.ts'
import { sees } from '../../rollout/operators.ts'
import { type EntryDocument, formatSettingShort } from '../../rollout/partner-document.ts'
import type { Page } from './page.ts'
import { type Column, Section, table, Time } from './parts.tsx'

const ENTRIES = 500

export const audit: Page = {
  path: '/audit',
  show: async ({ actor }, { stages }) => {
    const all = await stages.history({ limit: ENTRIES })
    // Entries without a partner concern all partners, so only people who see all partners may see them.
    const entries = all.filter(({ partner }) => sees(actor, partner ?? ''))
    return {
      title: 'Audit trail',
      json: { entries },
      body: (
        <Section title="Entries, newest first">
          <p class="soft">
            markbridge rollout verify checks that the entries form a chain, and compares the chain with a
            certificate.
          </p>
          {auditTable(entries)}
        </Section>
      ),
    }
  },
}

const columns: readonly Column<EntryDocument>[] = [
  ['Entry', ({ entry }) => String(entry)],
  ['Time', ({ at }) => <Time at={at} />],
  ['By', ({ by }) => by],
  ['Partner', ({ partner }) => partner],
  ['Action', ({ action }) => action],
  ['From', ({ from }) => from && formatSettingShort(from)],
  ['To', ({ to }) => to && formatSettingShort(to)],
  ['Advice', ({ reason }) => readAdviceNote(reason).verdict],
  ['Reason', ({ reason }) => readAdviceNote(reason).reason],
]
const auditTable = table('Audit trail', 'The audit trail has no entries.', columns)
export const historyTable = table(
  'History',
  'The stage has never been changed.',
  columns.filter(([heading]) => heading !== 'Partner'),
)
