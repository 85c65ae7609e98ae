/**
 * How a store keeps the properties of one entity type in SQLite columns. It names columns; values never pass through
 * it, and names of a query reach it only after they were found in the model.
 */
export interface SqlMapping {
  /**
   * The SQL expression for a property, by its path from the entity (`['Attendee', 'ExternalID']`), or `undefined` where
   * the store has no column for it. The expression yields NULL for null and otherwise, by EDM type:
   * Guid: lower-case text; String: text; Boolean: 1 or 0; numbers: INTEGER or REAL; Binary: base64url text without
   * padding; an enumeration value: the member's name; DateTimeOffset: milliseconds since 1970, of values written in
   * UTC; Date: milliseconds since 1970 of its midnight UTC; TimeOfDay: milliseconds since midnight; Duration:
   * milliseconds; a complex value: anything that is not NULL. Text is compared as the column collates: keep BINARY.
   */
  column(path: readonly string[]): string | undefined
}
