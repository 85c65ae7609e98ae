import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

// Node.js can sign, but cannot write certificates. The code below writes the parts of X.509 (RFC 5280 4.1) that a certificate for this
// machine needs. A library would add fifteen packages to every installation.

const [INTEGER, BIT_STRING, OCTET_STRING, UTF8, UTC_TIME, SEQUENCE, SET] = [2, 3, 4, 12, 23, 0x30, 0x31]
const [VERSION, EXTENSIONS, DNS_NAME, IP_ADDRESS] = [0xa0, 0xa3, 0x82, 0x87]
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')
const COMMON_NAME = Buffer.from('0603550403', 'hex')
const SUBJECT_ALTERNATIVE_NAME = Buffer.from('0603551d11', 'hex')
const LOOPBACK = [Buffer.from([127, 0, 0, 1]), Buffer.from('1'.padStart(32, '0'), 'hex')]

const HOUR_MS = 3_600_000
const LIFETIME_MS = 90 * 24 * HOUR_MS

/** Creates a certificate for localhost, 127.0.0.1 and ::1 that is valid for 90 days, and its key, both as PEM texts. */
export function createSelfSigned(nowMs: number): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = encode(SEQUENCE, ECDSA_WITH_SHA256)
  const commonName = encode(SEQUENCE, COMMON_NAME, encode(UTF8, Buffer.from('Markbridge, self-signed')))
  const name = encode(SEQUENCE, encode(SET, commonName))
  const names = [
    encode(DNS_NAME, Buffer.from('localhost')),
    ...LOOPBACK.map((address) => encode(IP_ADDRESS, address)),
  ]
  const alternatives = encode(OCTET_STRING, encode(SEQUENCE, ...names))
  const content = encode(
    SEQUENCE,
    encode(VERSION, encode(INTEGER, Buffer.from([2]))),
    // The serial number must be positive, so a byte 1 precedes the random bytes and keeps the sign bit zero.
    encode(INTEGER, Buffer.from([1]), randomBytes(8)),
    algorithm,
    name,
    encode(SEQUENCE, toUtcTime(nowMs - HOUR_MS), toUtcTime(nowMs + LIFETIME_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    encode(EXTENSIONS, encode(SEQUENCE, encode(SEQUENCE, SUBJECT_ALTERNATIVE_NAME, alternatives))),
  )
  const signature = encode(BIT_STRING, Buffer.from([0]), sign('sha256', content, privateKey))
  const base64 = encode(SEQUENCE, content, algorithm, signature).toString('base64')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** Encodes a value in DER (X.690 8.1). The value must be shorter than 64 KiB. */
function encode(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function toUtcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\D/g, '')
  return encode(UTC_TIME, Buffer.from(`${digits.slice(2, 14)}Z`))
}
