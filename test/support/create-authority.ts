import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Creates a certificate authority in this folder. `fromDays` and `toDays`, counted from today, limit the validity of a certificate. */
export function createAuthority(folder: string) {
  const openssl = (...args: string[]): Buffer => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const settings = {
    ...{ database: 'index', new_certs_dir: '.', rand_serial: 'yes', default_md: 'sha256' },
    ...{ policy: 'names', copy_extensions: 'copy', unique_subject: 'no' },
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(
    join(folder, 'ca.cnf'),
    ['[ca]', 'default_ca = own', '[own]', ...lines, '[names]', 'commonName = supplied\n'].join('\n'),
  )
  writeFileSync(join(folder, 'index'), '')
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout']
  openssl('req', '-x509', ...newKey, 'ca.key', '-out', 'ca.pem', '-subj', '/CN=authority')
  const after = (days: number): string =>
    new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '')
  return {
    certificate: readFileSync(join(folder, 'ca.pem'), 'utf8'),
    issue: (host: string, fromDays: number, toDays: number) => {
      const names = ['-subj', '/CN=service', '-addext', `subjectAltName=${host}`]
      openssl('req', ...newKey, 'own.key', '-out', 'own.csr', ...names)
      const span = ['-startdate', after(fromDays), '-enddate', after(toDays)]
      const by = ['-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key']
      openssl('ca', '-batch', '-notext', ...by, '-in', 'own.csr', '-out', 'own.pem', ...span)
      const [key, cert] = ['own.key', 'own.pem'].map((file) => readFileSync(join(folder, file)))
      return { key, cert }
    },
  }
}
