/** The decoded path of the V2 batch write, under any prefix and in any case. */
export const batchPath = /\/v2\/attendance\/\$batch\/?$/i
