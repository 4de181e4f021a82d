// The crash matrix is in test/crash; with twenty resumes of each crash in DSE-02.full.test.ts.
import { describeShuffledResumes } from "../crash/shuffled.js";

describeShuffledResumes(4);
