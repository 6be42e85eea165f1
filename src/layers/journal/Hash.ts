/**
 * SHA-256, synchronous: a line is hashed between two others.
 */
import { hash } from "node:crypto"
import { Digest } from "../../domain/Ids.ts"

export const sha256 = (bytes: Uint8Array): Digest => Digest.make(hash("sha256", bytes, "hex"))
