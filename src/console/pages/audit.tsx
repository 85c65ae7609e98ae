import { sees } from '../../rollout/operators.ts'
import type { StageSetting } from '../../rollout/stage.ts'
import type { AuditEntry } from '../../rollout/store/audit-trail.ts'
import type { Page } from './page.ts'
import { Table, Time } from './parts.tsx'

const ENTRIES = 500

/** Who did what: the newest rows of the audit trail. */
export const audit: Page = {
  path: '/audit',
  show: async ({ actor }, { stages }) => {
    const all = await stages.history({ limit: ENTRIES })
    // Rows about no partner are about all of them.
    const entries = all.filter(({ partner }) => sees(actor, partner))
    return {
      title: 'Audit trail',
      json: { entries },
      body: (
        <>
          <p class="soft">
            The newest {ENTRIES} entries. markbridge rollout verify checks that none was changed or removed.
          </p>
          <History entries={entries} withPartner />
        </>
      ),
    }
  },
}

/** Rows of the audit trail, as they are given. */
export function History({ entries, withPartner = false }: HistoryProps) {
  return (
    <Table
      caption="Audit trail"
      rows={entries}
      columns={[
        ['Entry', ({ entry }) => entry],
        ['Time (UTC)', ({ atMs }) => <Time ms={atMs} />],
        ['By', ({ by }) => by],
        withPartner && ['Partner', ({ partner }) => partner],
        ['Action', ({ action }) => action],
        ['From', ({ from }) => formatSetting(from)],
        ['To', ({ to }) => formatSetting(to)],
        ['Reason', ({ reason }) => reason],
      ]}
      empty="The audit trail has no entry."
    />
  )
}

interface HistoryProps {
  readonly entries: readonly AuditEntry[]
  readonly withPartner?: boolean
}

function formatSetting(setting: StageSetting | undefined): string {
  if (setting === undefined) return ''
  return setting.stage === 'canary' ? `canary ${setting.percent} %` : setting.stage
}
