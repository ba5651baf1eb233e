# Sets what `cmake --install BUILD --prefix P` installs, and where. Two components are installed only on request: `tests` has
# the tests that need a GPU, which run from the folder in which they are installed, and `development` the library for other
# programs (InstalledLibrary.cmake).
#   bin/                          the programs
#   lib/syncopate/                the CUDA and MPI modules, which the programs find relative to bin/
#   share/syncopate/deploy        gpu_check.sh, gpu_run.sh, and the job scripts to copy
#   share/syncopate/bench/peers   the programs that benchmarks are compared with
#   share/doc/syncopate           README.md
#   libexec/syncopate/tests       component tests
#   include/syncopate/, lib/*.a, lib/cmake/syncopate/   component development
set(SYNCOPATE_MODULE_DESTINATION lib/syncopate)
set(SYNCOPATE_SHARE_DESTINATION share/syncopate)
set(SYNCOPATE_TESTS_DESTINATION libexec/syncopate/tests)
# A program finds its modules through its run path: in a build tree in deploy/, after installation as above.
set(CMAKE_BUILD_RPATH "$ORIGIN;${PROJECT_BINARY_DIR}/deploy")
set(SYNCOPATE_PROGRAM_RPATH "$ORIGIN/../${SYNCOPATE_MODULE_DESTINATION}")

install(DIRECTORY deploy/slurm DESTINATION ${SYNCOPATE_SHARE_DESTINATION}/deploy
        FILES_MATCHING PATTERN "*.sbatch")
install(PROGRAMS deploy/gpu_check.sh deploy/gpu_run.sh DESTINATION ${SYNCOPATE_SHARE_DESTINATION}/deploy)
install(DIRECTORY bench/peers DESTINATION ${SYNCOPATE_SHARE_DESTINATION}/bench FILES_MATCHING PATTERN "*.py"
        PATTERN "__pycache__" EXCLUDE)
install(FILES README.md DESTINATION share/doc/syncopate)
