import { describeShuffledResumes } from "../crash/shuffled.js";

describeShuffledResumes(20);
