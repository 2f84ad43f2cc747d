import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from '../temp-folder.ts';

/** A variable, because knip would report a literal as a missing package. */
const OPENSSL = 'openssl';
const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

export type Certificate = { cert: string; key: string };

/**
 * A private certificate authority for the duration of a test. All values are paths of PEM files.
 */
export function createAuthority(name = 'authority') {
  const folder = tempFolder();
  const path = (file: string) => join(folder, `${name}-${file}`);
  const openssl = (...args: string[]) => void execFileSync(OPENSSL, args, { stdio: 'ignore' });
  const ca = path('ca.pem');
  const caKey = path('ca.key');
  openssl(
    'req',
    '-x509',
    ...CURVE,
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
    '-keyout',
    caKey,
    '-out',
    ca,
  );
  return {
    ca,
    /** Issues a certificate for 127.0.0.1 and localhost; with `files`, replaces these. */
    issue(
      subject: string,
      files: Certificate = { cert: path(`${subject}.pem`), key: path(`${subject}.key`) },
    ) {
      const request = path(`${subject}.csr`);
      const extensions = path(`${subject}.ext`);
      writeFileSync(extensions, 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
      openssl('req', ...CURVE, '-subj', `/CN=${subject}`, '-keyout', files.key, '-out', request);
      const signing = [
        '-CA',
        ca,
        '-CAkey',
        caKey,
        '-CAcreateserial',
        '-days',
        '2',
        '-extfile',
        extensions,
      ];
      openssl('x509', '-req', '-in', request, ...signing, '-out', files.cert);
      return files;
    },
  };
}

/**
 * The options with which a redis-server accepts TLS on a port, only with a
 * certificate of the authority.
 */
export function tlsOptions(
  port: number,
  ca: string,
  { cert, key }: Certificate,
): Record<string, string> {
  return {
    'tls-port': String(port),
    'tls-ca-cert-file': ca,
    'tls-cert-file': cert,
    'tls-key-file': key,
    'tls-auth-clients': 'yes',
    'tls-replication': 'yes',
  };
}
