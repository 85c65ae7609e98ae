import { stateCodes, transitions } from '../../src/journal/lifecycle.ts'

/**
 * The coverage of histories: how often each transition of a record occurred, and which faults followed each other, as `kill then pause`.
 */
export interface Coverage {
  readonly transitions: Readonly<Record<string, number>>
  readonly faults: readonly string[]
}

/** SQL that makes the database of a history count each change of a record's state, by the codes of both states. */
export const countTransitions = `
  create table reached (name text primary key, count integer not null);
  create trigger reached_insert after insert on journal_records begin
    insert into reached values ('>' || new.state, 1) on conflict (name) do update set count = count + 1;
  end;
  create trigger reached_update after update of state, active, superseded on journal_records
  when old.state <> new.state or old.active <> new.active begin
    -- The adapter writes a record that it refuses as open and settles it in the same transaction.
    insert into reached values (iif(new.reason = 'fault', '', old.state) || '>' || new.state || iif(old.superseded <> new.superseded, ' superseded', ''), 1)
      on conflict (name) do update set count = count + 1;
  end`

export function toTransitionCounts(
  rows: readonly { readonly name: string; readonly count: number }[],
): Coverage['transitions'] {
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]))
}

export function addCoverage(one: Coverage, other: Coverage): Coverage {
  const sum = { ...one.transitions }
  for (const [name, count] of Object.entries(other.transitions)) sum[name] = (sum[name] ?? 0) + count
  return { transitions: sum, faults: [...new Set([...one.faults, ...other.faults])] }
}

export const noCoverage: Coverage = { transitions: {}, faults: [] }

/** The maximum number of missing pairs of faults that are listed by name. */
const MANY = 30

/** Formats one line for each transition of `lifecycle.ts` with its count, and one line for the pairs of faults. */
export function describeCoverage({ transitions: counts, faults }: Coverage): string[] {
  const lines = transitions.map(({ on, from, to }) => {
    const codes = `${from === undefined ? '' : stateCodes[from]}>${stateCodes[to]}`
    const count = counts[on === 'supersede' ? `${codes} superseded` : codes] ?? 0
    return `${on.padEnd(9)} ${(from ?? 'new').padEnd(8)} to ${to.padEnd(9)} ${count === 0 ? 'NEVER' : count}`
  })
  const kinds = [...new Set(faults.flatMap((pair) => pair.split(' then ')))].sort()
  const pairs = kinds.flatMap((one) => kinds.map((other) => `${one} then ${other}`))
  const never = pairs.filter((pair) => !faults.includes(pair))
  const names = never.length > MANY ? '' : `, all but: ${never.join(', ')}`
  const came = `${faults.length} of ${pairs.length} pairs of faults that follow each other`
  return [...lines, never.length === 0 ? came : came + names]
}
