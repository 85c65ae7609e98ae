import * as z from 'zod'

import { parseAddressRange } from '../http/address.ts'
import { key } from './values.ts'

const address = z
  .string()
  .refine(
    (text) => parseAddressRange(text) !== undefined,
    'must be an IP address, or a range such as 10.0.0.0/8',
  )

const hostName = z
  .string()
  .regex(/^(?:[\w.-]+|\[[0-9a-f:.]+\])$/i, 'must be a name or an address, without a port')
  .transform((name) => name.toLowerCase())

/** The web console of operators. */
export const consoleSchema = z.strictObject({
  port: key('TCP port of the console; 0 selects a free one.', z.int().min(0).max(65_535)),
  host: key(
    'Address to listen on; beyond loopback rollout.operators has to name who may enter.',
    z.string().min(1).default('127.0.0.1'),
  ),
  hosts: key(
    'Further names under which browsers reach the console, such as the one of a proxy; requests for other names are refused.',
    z.array(hostName).default([]),
  ),
  runs: key(
    'Folder with the runs of comparison that the console shows (--dir of compare run).',
    z.string().min(1).default('./data/compare'),
  ),
  trustedProxies: key(
    'Addresses or ranges (10.0.0.0/8) of proxies in front whose X-Forwarded-Proto and identity header are trusted.',
    z.array(address).default([]),
  ),
  identity: key(
    'Trusted proxies authenticate operators and name them in a header.',
    z
      .strictObject({
        header: key(
          'Header with the name of an operator of rollout.operators.',
          z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header'),
        ),
      })
      .optional(),
  ),
})
