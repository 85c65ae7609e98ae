/**
 * SQL for batch and position of the newest live record of a key in a state, as a subquery: one step into the index of live records,
 * however many there are. `further` may narrow it to older ones, by conditions on `n`.
 */
export function newestOf(key: string, state: 0 | 3, further = 'true'): string {
  return `(select n.batch, n.position from journal_records n
    where n.key = ${key} and n.live = 1 and n.state = ${state} and ${further}
    order by n.batch desc, n.position desc limit 1)`
}
