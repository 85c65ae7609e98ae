/** The only partner of a scenario. */
export const PARTNER = 'acme'
