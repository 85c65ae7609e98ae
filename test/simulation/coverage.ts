import { stateCodes, transitions } from '../../src/journal/lifecycle.ts'

/** The coverage of histories: how often records took each transition, and which kinds of faults followed each other. */
export interface Reached {
  readonly transitions: Readonly<Record<string, number>>
  readonly faults: readonly string[]
}

/** Counts each change of a record's state in the database of a history, by the codes of both states. */
export const countTransitions = `
  create table reached (name text primary key, count integer not null);
  create trigger reached_insert after insert on journal_records begin
    insert into reached values ('>' || new.state, 1) on conflict (name) do update set count = count + 1;
  end;
  create trigger reached_update after update of state, active, superseded on journal_records
  when old.state <> new.state or old.active <> new.active begin
    -- A record that the adapter refuses is written as open and ended in the same transaction.
    insert into reached values (iif(new.reason = 'fault', '', old.state) || '>' || new.state || iif(old.superseded <> new.superseded, ' superseded', ''), 1)
      on conflict (name) do update set count = count + 1;
  end`

/** Reads the counts of a history from its rows. */
export function toReached(
  rows: readonly { readonly name: string; readonly count: number }[],
): Reached['transitions'] {
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]))
}

/** Adds up the coverage of several histories. */
export function addReached(one: Reached, other: Reached): Reached {
  const sum = { ...one.transitions }
  for (const [name, count] of Object.entries(other.transitions)) sum[name] = (sum[name] ?? 0) + count
  return { transitions: sum, faults: [...new Set([...one.faults, ...other.faults])] }
}

export const nothingReached: Reached = { transitions: {}, faults: [] }

/** The number of missing pairs up to which they are named. */
const MANY = 30

/**
 * Formats each transition of `lifecycle.ts` with the number of times it was taken, and the number of pairs of fault kinds that occurred.
 */
export function describeReached({ transitions: counts, faults }: Reached): string[] {
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
