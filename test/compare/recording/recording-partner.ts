import { toPartner } from '../../../src/app/partners.ts'
import { parseConfig } from '../../../src/config/index.ts'
import type { Partner } from '../../../src/partners/partner.ts'

/** A partner with the default settings. */
export function recordingPartner(): Partner {
  const config = parseConfig({ upstreams: { v3: { baseUrl: 'http://v3.test' } } })
  const [partner] = config.partners
  if (partner === undefined) throw new Error('no partner')
  return toPartner(partner, undefined, undefined, config)
}
